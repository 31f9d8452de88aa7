const [read] = await openclaw.tools.search("read a whole file", {limit: 1});
try {
  return (await openclaw.tools.call(read.id, {path: "/no/such/file"})).result.details;
} catch (e) {
  return {code: e.code, message: e.message};
}
