const tool = (await openclaw.tools.search("read file content"))[0];
let outcome;
try {
  outcome = await openclaw.tools.call(tool.id, { path: "/missing.txt" });
} catch (error) {
  if (error instanceof ToolError) outcome = { kind: error.name, code: error.code, why: error.message };
  else throw error;
}
return outcome;
