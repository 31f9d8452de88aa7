const main = async () => {
  const note = await tools.notes.create_note({ title: "Groceries", body: "milk" });
  const read = await tools.notes.get_note({ id: note.result.details.id });
  return read.details;
};
main();
