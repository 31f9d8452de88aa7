const hits = await openclaw.tools.search("create calendar event");
const create = hits.find((h) => /create.*event/i.test(h.name));
try {
  const r = await openclaw.tools.call(create.id, {
    title: "Tea with Ana",
    start: "2026-07-01T15:00:00+02:00",
    end: "2026-07-01T15:30:00+02:00",
    attendees: ["ana@example.com"],
  });
  return { created: true, event: r.result.details };
} catch (err) {
  return { created: false, code: err.code, message: err.message };
}
