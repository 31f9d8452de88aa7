const [tool] = await openclaw.tools.search("prime factors of an integer", {limit: 1});
const out = {};
for (const n of [84, 97, 1001]) out[n] = (await openclaw.tools.call(tool.id, {n})).result.details;
return out;
