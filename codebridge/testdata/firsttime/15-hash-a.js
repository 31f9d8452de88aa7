const [h] = await openclaw.tools.search("hash text sha256 checksum", {limit: 1});
return (await openclaw.tools.call(h.id, {text: "hello", algorithm: "sha256"})).result.details;
