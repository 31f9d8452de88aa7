const search = openclaw.tools.search, call = openclaw.tools.call;
const [create, group, list] = await Promise.all([
  search("create contact"), search("put a contact into a group"), search("list contacts of a group"),
]).then(lists => lists.map(l => l[0].id));
const { result: { details: contact } } = await call(create, { name: "Ida Example", company: "Example Ltd" });
await call(group, { id: contact.id, groups: ["friends"] });
const members = await call(list, { group: "friends" });
return { create, group, list, members: members.result.details };
