const [hit] = await openclaw.tools.search("create calendar event", {limit: 1});
const d = await openclaw.tools.describe(hit.id);
return d.parameters.required;
