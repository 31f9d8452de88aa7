const results = await Promise.allSettled([
  openclaw.tools.call("read_file", { path: "/missing.txt" }),
  openclaw.tools.call("no_such_tool", {}),
]);
return results.map(r => ({ status: r.status, reason: r.reason?.code }));
