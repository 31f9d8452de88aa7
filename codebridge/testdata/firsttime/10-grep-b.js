const tree = await openclaw.tools.call((await openclaw.tools.search("directory tree list all files"))[0].id, {});
console.log(tree.result.details);
const grep = (await openclaw.tools.search("grep files"))[0];
const matches = await openclaw.tools.call(grep.id, { text: "e", path: "/" });
return { files: tree.result.details, matches: matches.result.details };
