"""The backend that pyplot has in a display run: plt.show() puts the open figures among what the cell shows."""

from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas", "show"]


def show(*args: object, **kwargs: object) -> None:
    from matplotlib import pyplot

    from autograder.worker.showing import display

    for number in pyplot.get_fignums():
        display(pyplot.figure(number))
    pyplot.close("all")
