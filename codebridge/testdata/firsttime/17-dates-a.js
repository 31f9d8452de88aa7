const [days] = await openclaw.tools.search("count days between two dates", {limit: 1});
const [dow] = await openclaw.tools.search("day of week of a date", {limit: 1});
const [d, w] = await Promise.all([openclaw.tools.call(days.id, {from: "2026-01-01", to: "2026-12-24"}), openclaw.tools.call(dow.id, {date: "2026-12-24"})]);
return {year: 2026, days: d.result.details, weekday: w.result.details};
