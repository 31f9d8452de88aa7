const hits = await openclaw.tools.search("factorial of n");
const fact = await openclaw.tools.call(hits[0].id, { n: 25 });
const value = fact.result.details;
const number = typeof value === "object" ? Object.values(value).find(v => typeof v === "bigint" || typeof v === "number") : BigInt(value);
const addTool = (await openclaw.tools.search("add numbers exactly"))[0];
const sum = await openclaw.tools.call(addTool.id, { numbers: [number, 1] });
return sum.result.details;
