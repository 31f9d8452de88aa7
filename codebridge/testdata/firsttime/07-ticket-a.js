const [create] = await openclaw.tools.search("create ticket for a bug", {limit: 1});
const t = (await openclaw.tools.call(create.id, {title: "Login fails", type: "bug", priority: "high"})).result.details;
await openclaw.tools.call("mcp:tickets:assign_ticket", {id: t.id, assignee: "bo"});
await openclaw.tools.call("mcp:tickets:comment_on_ticket", {id: t.id, comment: "Seen on 1 June"});
const r = await openclaw.tools.call("mcp:tickets:get_ticket", {id: t.id});
return r.result.details;
