// What pages do beyond links and forms: Airflow's theme, links out of the frame, charts. All of them work without it.
"use strict";

(() => {
  // Airflow frames these pages on its own origin: its theme can be read, and its window can be told to go elsewhere.
  const outside = (() => {
    try {
      return window.parent !== window && window.parent.document ? window.parent : null;
    } catch {
      return null;
    }
  })();

  const root = document.documentElement;

  const follow = () => {
    const classes = outside.document.documentElement.classList;
    const theme = classes.contains("dark") ? "dark" : classes.contains("light") ? "light" : null;
    if (theme !== null && root.dataset.theme !== theme) {
      root.dataset.theme = theme;
      document.dispatchEvent(new Event("theme"));
    }
  };

  if (outside !== null) {
    follow();
    new MutationObserver(follow).observe(outside.document.documentElement, { attributeFilter: ["class"] });
  }

  // The frame may not navigate Airflow's window, so a link of that window does it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[target='_top']");
    if (!link || outside === null || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey) {
      return;
    }
    event.preventDefault();
    const made = outside.document.createElement("a");
    made.href = link.href;
    outside.document.body.append(made);
    made.click();
    made.remove();
  });

  // A variable with light-dark() is a colour only where something has that colour.
  const style = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    root.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };

  const shown = (value, unit) => {
    if (value === null || value === undefined) {
      return "–";
    }
    const digits = Math.abs(value) < 10 && unit !== "records" ? 2 : Math.abs(value) < 100 && unit !== "records" ? 1 : 0;
    return `${value.toLocaleString("en", { maximumFractionDigits: digits })} ${unit}`;
  };

  const short = (value) =>
    value === null ? "" : value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });

  const draw = (place, series, unit) => {
    const name = place.dataset.series;
    const values = series[name];
    const plot = place.querySelector(".plot");
    plot.textContent = "";
    if (!values.some((value) => value !== null)) {
      plot.textContent = place.dataset.without;
      return null;
    }
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    const axis = { stroke: style("--muted"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const days = series.time.length > 1 && series.time.at(-1) - series.time[0] > 86400;
    const clock = (at) => new Date(at * 1000).toISOString().slice(days ? 5 : 11, days ? 16 : 19).replace("T", " ");
    const options = {
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      width: plot.clientWidth,
      height: plot.clientHeight,
      cursor: { sync: { key: "batches" }, y: false, points: { size: 7 } },
      legend: { show: false },
      scales: { x: { range: (_, low, high) => (series.time.length > 1 && high > low ? [low, high] : [low - 60, low + 60]) }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [{ ...axis, space: 90, size: 26, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 52, values: (_, ticks) => ticks.map(short) }],
      series: [{}, { stroke: style("--accent"), width: 1.5, fill: style("--accent-soft"), points: { show: values.length < 80, size: 4, fill: style("--accent") } }],
      hooks: {
        setCursor: [
          (chart) => {
            const at = chart.cursor.idx;
            tip.hidden = at === null || at === undefined || chart.cursor.left < 0;
            if (!tip.hidden) {
              tip.textContent = `batch ${series.batch[at]}: ${shown(values[at], unit)}`;
              tip.style.left = `${Math.min(chart.cursor.left + 60, plot.clientWidth - 150)}px`;
              tip.style.top = "4px";
            }
          },
        ],
      },
    };
    const chart = new uPlot(options, [series.time, values], plot);
    plot.style.position = "relative";
    plot.append(tip);
    chart.over.addEventListener("click", () => {
      const at = chart.cursor.idx;
      if (at !== null && at !== undefined) {
        location.href = place.closest("[data-batch]").dataset.batch.replace("BATCH", series.batch[at]);
      }
    });
    return chart;
  };

  const charts = async () => {
    const place = document.querySelector("[data-timeline]");
    if (place === null || typeof uPlot === "undefined") {
      return;
    }
    const asked = async () => {
      const answer = await fetch(place.dataset.timeline, { credentials: "same-origin" });
      return answer.ok ? answer.json() : null;
    };
    let known = await asked();
    if (known === null) {
      return;
    }
    let made = [];
    const all = () => {
      const { series, titles } = known;
      made.forEach((chart) => chart.destroy());
      made = [...place.querySelectorAll("[data-series]")].map((each) => draw(each, series, titles[each.dataset.series][1]));
      made = made.filter((chart) => chart !== null);
    };
    all();
    let waiting = 0;
    const later = () => {
      clearTimeout(waiting);
      waiting = setTimeout(all, 120);
    };
    new ResizeObserver(later).observe(place);
    document.addEventListener("htmx:afterSettle", async () => {
      const found = await asked();
      if (found !== null && found.series.batch.at(-1) !== known.series.batch.at(-1)) {
        known = found;
        all();
      }
    });
    document.addEventListener("theme", all);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  };

  document.addEventListener("DOMContentLoaded", charts);
})();
