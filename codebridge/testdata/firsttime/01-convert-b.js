// Find a unit conversion tool and convert a marathon from miles to kilometres
const hits = await openclaw.tools.search("convert length units miles kilometers");
console.log(`Found ${hits.length} tools`);
const tool = hits.find(h => h.name.includes("length"));
if (!tool) {
  return { error: "no conversion tool found" };
}
const { result } = await openclaw.tools.call(tool.id, { value: 26.2, from: "mi", to: "km" });
return { tool: tool.id, data: result.details };
