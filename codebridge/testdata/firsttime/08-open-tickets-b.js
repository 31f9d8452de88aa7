const hits = await openclaw.tools.search("list tickets by status");
const listTool = hits.find(h => h.name.includes("list_tickets"));
const response = await openclaw.tools.call(listTool.id, { status: "open", limit: 50 });
const data = response.result.details;
const tickets = Array.isArray(data) ? data : (data.tickets || data.items || []);
const byPriority = {};
tickets.forEach(t => { byPriority[t.priority] = (byPriority[t.priority] || 0) + 1; });
return { count: tickets.length, byPriority };
