const [write] = await openclaw.tools.search("write a file", {limit: 1});
await openclaw.tools.call(write.id, {path: "/tmp/hello.txt", content: "hello world"});
const [read] = await openclaw.tools.search("read a whole file", {limit: 1});
return (await openclaw.tools.call(read.id, {path: "/tmp/hello.txt"})).result.details;
