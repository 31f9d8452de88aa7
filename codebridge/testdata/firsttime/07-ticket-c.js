const r = await openclaw.tools.create_ticket({ title: "Login fails", type: "bug" });
const id = r.result.details.id;
await Promise.all([
  openclaw.tools.assign_ticket({ id, assignee: "bo" }),
  openclaw.tools.comment_on_ticket({ id, comment: "first" }),
]);
(await openclaw.tools.get_ticket({ id })).result.details
