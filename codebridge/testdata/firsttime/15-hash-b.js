const enc = (await openclaw.tools.search("encode base64"))[0];
const dec = (await openclaw.tools.search("decode base64"))[0];
const encoded = (await openclaw.tools.call(enc.id, { text: "hello" })).result.details;
console.log("encoded:", encoded);
const data = typeof encoded === "string" ? encoded : Object.values(encoded)[0];
const decoded = (await openclaw.tools.call(dec.id, { data })).result.details;
return { encoded, decoded };
