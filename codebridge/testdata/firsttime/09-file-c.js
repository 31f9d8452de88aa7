await tools.write_file({path: "/hello.txt", content: "hello world"});
const r = await tools.read_file({path: "/hello.txt"});
return r.content[0].text
