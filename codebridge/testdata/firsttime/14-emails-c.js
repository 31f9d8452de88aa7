/* extract */
const r = await openclaw.tools.call(
  "text__extract_emails",
  { text: "ana@example.com, bo@example.org" },
);
return r.structuredContent ?? r.result.details;
