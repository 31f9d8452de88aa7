const find = async (query) => {
  const hits = await openclaw.tools.search(query, { limit: 5 });
  if (hits.length === 0) throw new Error(`No tool for ${query}`);
  return hits[0].id;
};
const createId = await find("create note");
const created = await openclaw.tools.call(createId, { title: "Groceries", body: "milk, bread", tags: ["shopping"] });
console.log("created", created.result.details);
const list = await openclaw.tools.call(await find("search notes"), { query: "groceries" });
return list.result.details;
