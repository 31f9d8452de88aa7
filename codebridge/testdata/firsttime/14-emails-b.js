const extract = (await openclaw.tools.search("extract email addresses"))[0];
const emails = (await openclaw.tools.call(extract.id, { text: "Write to kim@example.com or lee@example.org." })).result.details;
const list = Array.isArray(emails) ? emails : Object.values(emails).find(Array.isArray);
const create = (await openclaw.tools.search("create contact"))[0];
const added = [];
for (const email of list) {
  const c = await openclaw.tools.call(create.id, { name: email.split("@")[0], emails: [email] });
  added.push(c.result.details);
}
return { added };
