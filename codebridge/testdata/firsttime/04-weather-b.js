const hits = await openclaw.tools.search("current weather");
const weatherTool = hits.find(h => h.id.includes("current_weather")) || hits[0];
const report = {};
for (const city of ["Oslo", "Lisbon"]) {
  try {
    const res = await openclaw.tools.call(weatherTool.id, { city, units: "metric" });
    report[city] = res.result.details;
  } catch (e) {
    report[city] = `failed: ${e.message}`;
  }
}
return report;
