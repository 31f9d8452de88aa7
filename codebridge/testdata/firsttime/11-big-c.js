(async () => {
  const r = await openclaw.tools.call("mcp:math:factorial", {n: 25});
  return r.result.details;
})();
