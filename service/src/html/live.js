(() => {
  const every = 10000;
  const list = () => document.getElementById("list");
  const news = document.getElementById("news");
  const live = document.getElementById("live");
  let silent = false;
  const get = async (address) => {
    const answer = await fetch(address, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    return answer;
  };
  // the new list takes the place of the old one, and the link that has the focus keeps it
  const renew = async () => {
    const page = await (await get(location.href)).text();
    const next = document.adoptNode(new DOMParser().parseFromString(page, "text/html").getElementById("list"));
    const focus = list().contains(document.activeElement) && document.activeElement.getAttribute("href");
    const more = Number(next.dataset.count) - Number(list().dataset.count);
    list().replaceWith(next);
    if (focus) [...next.querySelectorAll("a")].find((link) => link.getAttribute("href") === focus)?.focus();
    news.textContent = more === 1 ? "1 new report." : more > 1 ? `${more} new reports.` : "The list has changed.";
  };
  const look = async () => {
    if (document.hidden || !live.checked) return;
    try {
      const query = new URLSearchParams(location.search);
      query.set("limit", "1");
      const { count, reports } = await (await get(`reports?${query}`)).json();
      if (silent) news.textContent = "";
      silent = false;
      const { count: shown, newest } = list().dataset;
      if (String(count) !== shown || (reports[0]?.id ?? "") !== newest) await renew();
    } catch {
      if (!silent) news.textContent = "What is new is not shown: no answer.";
      silent = true;
    }
  };
  live.parentElement.hidden = false;
  live.addEventListener("change", look);
  document.addEventListener("visibilitychange", look);
  setInterval(look, every);
})();
