const [grep] = await openclaw.tools.search("search content of files for text", {limit: 1});
return (await openclaw.tools.call(grep.id, {text: "TODO", ignore_case: true})).result.details;
