const queries = ["weather alerts", "move file", "pin note"];
const summary = [];
for (const q of queries) {
  const hits = await openclaw.tools.search(q, { limit: 3 });
  for (const hit of hits) {
    summary.push({ query: q, id: hit.id, description: hit.description, input: hit.input });
  }
}
return summary;
