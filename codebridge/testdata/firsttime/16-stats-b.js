const numbers = [3, 1, 4, 1, 5, 9, 2, 6];
const stats = {};
for (const q of ["mean", "median", "standard deviation"]) {
  const hits = await openclaw.tools.search(q, { limit: 3 });
  const r = await openclaw.tools.call(hits[0].id, { numbers });
  stats[q] = r.result.details;
}
return stats;
