export default async function () {
  const { result } = await openclaw.tools.call("tickets__list_tickets", { status: "open" });
  for (const t of result) console.log(t.id, t.title);
  return result.map((t: any) => t.id);
}
