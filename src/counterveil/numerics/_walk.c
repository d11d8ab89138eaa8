/* The walk of matching under a limit: `plain_walk` of match_walk.py, to the same integers.

   Scores are only added, subtracted and compared, so that no compiler may round them otherwise. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

/* The open place nearest to p in the direction of the links; links are halved on the way. */
static int32_t open_at(int32_t *link, int32_t p)
{
    while (link[p] != p) {
        link[p] = link[link[p]];
        p = link[p];
    }
    return p;
}

/* x - low <= high - x, as real numbers: see `not_farther` in match_walk.py. */
static int not_farther(double x, double low, double high)
{
    double to_low = x - low, to_high = high - x;
    if (to_low != to_high)
        return to_low < to_high;
    double back = x - to_low;
    double lost_low = (x - (to_low + back)) + (back - low);
    back = high - to_high;
    return lost_low <= (high - (to_high + back)) + (back - x);
}

typedef struct {
    const double *scores;    /* of the donors, with a sentinel at either end */
    const int32_t *heads;    /* first place of the same score, NULL where no two are equal */
    int32_t none, capacity, width;
    int32_t *below, *above, *used, *chosen;
} Donors;

/* Write the open donors nearest to x, of which `under` are below it, and return how many were found. */
static int32_t search(const Donors *d, double x, int32_t under)
{
    int32_t size = 0, end = open_at(d->below, under), right = open_at(d->above, under + 1);
    int32_t left = d->heads ? open_at(d->above, d->heads[end]) : end;
    while (size < d->width) {
        if (left > 0 && (right == d->none || not_farther(x, d->scores[left], d->scores[right]))) {
            d->chosen[size++] = left;
            if (left < end) {
                left++;
            } else {
                end = open_at(d->below, (d->heads ? d->heads[left] : left) - 1);
                left = d->heads ? open_at(d->above, d->heads[end]) : end;
            }
        } else if (right < d->none) {
            d->chosen[size++] = right;
            right = open_at(d->above, right + 1);
        } else {
            break;
        }
    }
    return size;
}

static void serve(const Donors *d, Py_ssize_t rows, const int32_t *order, const char *treated, int arm,
                  const double *score, const int32_t *windows, double *excess, int32_t *sizes)
{
    int32_t is_open = d->none - 1;
    for (Py_ssize_t at = 0; at < rows && is_open > 0; at++) {
        Py_ssize_t row = order ? order[at] : at;
        if (treated[row] != arm)
            continue;
        int32_t first = windows[2 * row + 1], size = 0;
        if (first > 0)
            while (size < d->width && d->used[first + size] < d->capacity) {
                d->chosen[size] = first + size;
                size++;
            }
        if (size < d->width)
            size = search(d, score[row], windows[2 * row]);
        for (int32_t k = 0; k < size; k++) {
            int32_t place = d->chosen[k];
            if (++d->used[place] == d->capacity) {
                is_open--;
                d->below[place] = place - 1;
                d->above[place] = place + 1;
            }
            if (size < d->width)
                excess[place] += 1.0 / size - 1.0 / d->width;
        }
        sizes[row] = size;
    }
}

static PyObject *walk(PyObject *module, PyObject *arguments)
{
    Py_buffer order, treated, score, windows, donors, heads, used, excess, sizes;
    int arm, width, capacity;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*py*y*y*y*iiw*w*w*", &order, &treated, &arm, &score, &windows, &donors,
                          &heads, &width, &capacity, &used, &excess, &sizes))
        return NULL;
    int32_t places = (int32_t)(donors.len / (Py_ssize_t)sizeof(double));
    int32_t *links = malloc(3 * (size_t)places * sizeof(int32_t));
    if (links != NULL) {
        Donors d = {donors.buf, heads.len ? heads.buf : NULL, places - 1, capacity, width,
                    links, links + places, used.buf, links + 2 * (size_t)places};
        for (int32_t p = 0; p < places; p++)
            links[p] = links[places + p] = p;
        Py_BEGIN_ALLOW_THREADS
        serve(&d, treated.len, order.len ? order.buf : NULL, treated.buf, arm, score.buf, windows.buf, excess.buf,
              sizes.buf);
        Py_END_ALLOW_THREADS
        free(links);
    }
    Py_buffer *all[] = {&order, &treated, &score, &windows, &donors, &heads, &used, &excess, &sizes};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        PyBuffer_Release(all[k]);
    if (links == NULL)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"walk", walk, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_walk", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__walk(void)
{
    return PyModuleDef_Init(&definition);
}
