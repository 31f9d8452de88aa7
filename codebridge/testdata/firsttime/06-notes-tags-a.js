const hits = await openclaw.tools.search("list note tags", {limit: 3});
return (await openclaw.tools.call(hits[0].id, {})).result.details;
