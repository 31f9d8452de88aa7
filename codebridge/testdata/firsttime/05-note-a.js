const {tools} = openclaw;
const [create] = await tools.search("create note", {limit: 1});
const note = (await tools.call(create.id, {title: "Groceries", body: "milk, bread"})).result.details;
const [tag] = await tools.search("tag a note", {limit: 1});
await tools.call(tag.id, {id: note.id, tags: ["shopping"]});
const [get] = await tools.search("read one note", {limit: 1});
return (await tools.call(get.id, {id: note.id})).result.details;
