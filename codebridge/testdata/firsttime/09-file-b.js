const hits = await openclaw.tools.search("file write read content", { limit: 10 });
console.log(hits.map(h => h.id).join(", "));
const write = hits.find(h => h.id.endsWith(":write_file"));
const read = hits.find(h => h.id.endsWith(":read_file")) ?? (await openclaw.tools.search("read file"))[0];
await openclaw.tools.call(write.id, { path: "/notes/hello.txt", content: "hello world" });
const back = await openclaw.tools.call(read.id, { path: "/notes/hello.txt" });
const content = typeof back.result.details === "string" ? back.result.details : back.result.details.content;
return { same: content === "hello world", content };
