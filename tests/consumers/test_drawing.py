"""Pictures of data."""
from __future__ import annotations

import numpy as np

from .records import Library

matplotlib = Library("matplotlib")
seaborn = Library("seaborn")
plotly = Library("plotly")


def drawn(draw, **axes):
    """The pixels of what `draw` puts on new axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = FigureCanvasAgg(Figure(figsize=(2, 2), dpi=50))
    draw(canvas.figure.add_subplot(**axes))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba()).copy()


@matplotlib("``plot``, ``scatter``, ``bar``, ``errorbar``, ``fill_between``, ``step``, ``stem``", copies="in between")
def test_lines(x, y, i):
    def draw(ax):
        ax.plot(x, y, "--", label="a")
        ax.scatter(x, y, c=y, s=i)
        ax.bar(i, y)
        ax.errorbar(x, y, yerr=i)
        ax.fill_between(x, y, 0, where=y > 0)
        ax.step(x, y)
        ax.stem(x, y)

    return drawn(draw)


@matplotlib("``hist``, ``hist2d``, ``hexbin``, ``boxplot``, ``violinplot``, ``pie``", copies="in between")
def test_distributions(x, y, table):
    counts = []

    def draw(ax):
        counts.extend(ax.hist(x, bins=7)[:2])
        counts.append(ax.hist2d(x, y, bins=5)[0])
        ax.hexbin(x, y, gridsize=5)
        ax.boxplot(table)
        ax.violinplot(table)
        ax.pie(abs(x[:4]))

    return drawn(draw), counts


@matplotlib("``imshow``, ``pcolormesh``, ``contour``, ``contourf``, ``quiver``, ``matshow``", copies="each once")
def test_images(image, rgb, matrix):
    def draw(ax):
        ax.imshow(rgb)
        ax.imshow(image, cmap="gray", vmin=image.min(), vmax=image.max())
        ax.pcolormesh(matrix)
        ax.contour(image, levels=4)
        ax.contourf(matrix)
        ax.quiver(matrix, matrix)

    return drawn(draw)


@matplotlib("``imshow(x[:16, :16])``: its own bytes only", copies="each once")
def test_corner(image):
    return drawn(lambda ax: ax.imshow(image[:16, :16]))


@matplotlib("limits, ticks, ``axhline``, ``text``, ``annotate`` at elements", copies="in between")
def test_elements(x, y):
    def draw(ax):
        ax.plot(x, y)
        ax.set_xlim(x.min(), x.max())
        ax.set_xticks(np.sort(x)[::25])
        ax.axhline(y.mean())
        ax.text(x[0], y[0], f"{x[0]:.2f}")
        ax.annotate("here", (x[1], y[1]), (x[2], y[2]), arrowprops={})

    return drawn(draw)


@matplotlib("``plot_surface``, ``scatter`` in 3-D", copies="each once")
def test_space(matrix, x, y):
    def draw(ax):
        rows, columns = np.mgrid[:8, :6]
        ax.plot_surface(rows, columns, matrix)
        ax.scatter(x[:20], y[:20], x[:20] * y[:20])

    return drawn(draw, projection="3d")


@matplotlib("``imsave``, ``imread``", copies="each once")
def test_imsave(rgb, folder):
    import matplotlib.image

    matplotlib.image.imsave(folder / "a.png", rgb)
    return matplotlib.image.imread(folder / "a.png")


@seaborn("``lineplot``, ``scatterplot``, ``histplot``, ``kdeplot``, ``boxplot``", copies="in between")
def test_seaborn(x, y, i):
    import seaborn

    def draw(ax):
        seaborn.lineplot(x=i, y=y, ax=ax, errorbar=None)
        seaborn.scatterplot(x=x, y=y, hue=i, ax=ax)
        seaborn.histplot(x, bins=6, ax=ax)
        seaborn.kdeplot(x=x, ax=ax)
        seaborn.boxplot(x=i, y=y, ax=ax)

    return drawn(draw)


@seaborn("``heatmap(x)``, ``regplot``, a frame of lazy columns", copies="in between")
def test_seaborn_table(matrix, x, y, i):
    import pandas
    import seaborn

    frame = pandas.DataFrame({"x": x, "y": y, "i": i})

    def draw(ax):
        seaborn.heatmap(matrix, annot=True, ax=ax)
        seaborn.regplot(x=x, y=y, ci=None, ax=ax)
        seaborn.barplot(frame, x="i", y="y", errorbar=None, ax=ax)

    return drawn(draw)


@plotly("``go.Scatter(x=, y=)``, ``go.Heatmap(z=)``, ``go.Histogram``, ``to_json``", copies="in between")
def test_plotly(x, y, matrix):
    import plotly.graph_objects as go

    figure = go.Figure([go.Scatter(x=x, y=y), go.Heatmap(z=matrix), go.Histogram(x=x)])
    return figure.to_json()


@plotly("``px.scatter``, ``px.imshow``, ``px.histogram``", copies="each once", needs="pandas")
def test_plotly_express(x, y, i, rgb):
    import plotly.express as px

    return [figure.to_json() for figure in (px.scatter(x=x, y=y, color=i), px.imshow(rgb), px.histogram(x=x))]
