const hits = await openclaw.tools.search("convert miles to kilometres", {limit: 5});
const r = await openclaw.tools.call(hits[0].id, {value: 26.2, from: "mi", to: "km"});
return r.result.details;
