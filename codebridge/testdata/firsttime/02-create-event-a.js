const hits = await openclaw.tools.search("create calendar event", {limit: 5});
const r = await openclaw.tools.call(hits[0].id, {title: "Tea with Ana", start: "2026-07-01T15:00:00Z", end: "2026-07-01T15:30:00Z"});
return r.result.details;
