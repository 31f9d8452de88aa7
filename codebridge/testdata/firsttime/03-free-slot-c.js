const openclaw = globalThis.openclaw;
const found = (await openclaw.tools.search({ query: "find free slot calendar", limit: 3 })).results;
return await openclaw.tools.call({ id: found[0].id, args: { from: "2026-06-01T08:00:00Z", to: "2026-06-05T18:00:00Z", minutes: 60 } });
