async function main() {
  const event: { title: string; start: string; end: string } = {
    title: "Tea with Ana",
    start: "2026-07-01T15:00:00Z",
    end: "2026-07-01T15:30:00Z",
  };
  const r = await openclaw.tools.call("create_event", event);
  return r.result.details;
}
