const hits = await openclaw.tools.search("create calendar event", { limit: 3 });
const details = await Promise.all(hits.map(h => openclaw.tools.describe(h.id)));
return details.map(d => ({ id: d.id, description: d.description, properties: Object.keys(d.parameters?.properties ?? {}) }));
