const c = (await openclaw.tools.call((await openclaw.tools.search("create contact", {limit: 1}))[0].id, {name: "Ida Example", emails: ["ida@example.com"]})).result.details;
await openclaw.tools.call((await openclaw.tools.search("add contact to group", {limit: 1}))[0].id, {id: c.id, groups: ["friends"]});
return (await openclaw.tools.call((await openclaw.tools.search("list contacts", {limit: 1}))[0].id, {group: "friends"})).result.details;
