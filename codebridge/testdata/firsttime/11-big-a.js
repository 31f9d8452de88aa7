const [f] = await openclaw.tools.search("factorial", {limit: 1});
return (await openclaw.tools.call(f.id, {n: 25})).result.details;
