async () => {
  const res = await openclaw.tools.call("mcp:calendar:day_of_week", { date: "2026-12-24" });
  return res.result.details;
}
