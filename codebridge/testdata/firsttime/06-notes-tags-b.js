const hits = await openclaw.tools.search("list notes");
const tool = hits.find(h => h.name.endsWith("list_notes"));
const notes = (await openclaw.tools.call(tool.id)).result.details;
const items = Array.isArray(notes) ? notes : notes.notes ?? notes.items ?? [];
return { total: items.length, titles: items.map(n => n.title) };
