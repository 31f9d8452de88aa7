const [list] = await openclaw.tools.search("list open tickets", {limit: 1});
const r = await openclaw.tools.call(list.id, {status: "open"});
return r.result.details;
