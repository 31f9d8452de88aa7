const [slot] = await openclaw.tools.search("find free time slot in calendar", {limit: 1});
const r = await openclaw.tools.call(slot.id, {from: "2026-06-01T08:00:00Z", to: "2026-06-05T18:00:00Z", minutes: 60});
return r.result.details;
