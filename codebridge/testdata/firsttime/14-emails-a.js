const [ex] = await openclaw.tools.search("extract e-mail addresses from text", {limit: 1});
const r = await openclaw.tools.call(ex.id, {text: "Write to ana@example.com or bo@example.org."});
return r.result.details;
