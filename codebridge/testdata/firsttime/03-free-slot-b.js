const hits = await openclaw.tools.search("find free slot");
const describe = await openclaw.tools.describe(hits[0].id);
console.log(JSON.stringify(describe.parameters));
const res = await openclaw.tools.call(describe.id, { from: "2026-06-01T08:00:00Z", to: "2026-06-05T18:00:00Z", minutes: 60 });
return res.result.details;
