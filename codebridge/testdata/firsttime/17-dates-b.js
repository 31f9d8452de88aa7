const tool = (await openclaw.tools.search("which day of the week is a date"))[0];
console.log(tool.input);
const res = await openclaw.tools.call(tool.id, { date: "2026-12-24" });
return JSON.stringify(res.result.details, null, 2);
