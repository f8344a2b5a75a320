//===- operand_bindings.cpp - Operands that C code reads directly ---------===//
//
// C code reads the value of a subclass of int or float without calling it:
// `0.5 * n`, `values[n]`, `range(n)`. While sizes are traced, the functions of
// built-in types that do so are replaced by functions that call the number
// first (_capture/traced_sizes.py).
//
//===----------------------------------------------------------------------===//

#include "bindings.h"

#include <array>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace {

constexpr size_t kMostTypes = 48;

PyTypeObject *tracedInt = nullptr;
PyTypeObject *tracedFloat = nullptr;

bool isTraced(PyObject *object) {
  return Py_TYPE(object) == tracedInt || Py_TYPE(object) == tracedFloat;
}

/// Pins the number, or the numbers in a tuple or slice. Returns false with a
/// Python error.
bool pinWithin(PyObject *object) {
  if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i)
      if (!pinWithin(PyTuple_GET_ITEM(object, i)))
        return false;
    return true;
  }
  if (PySlice_Check(object)) {
    auto *slice = reinterpret_cast<PySliceObject *>(object);
    return pinWithin(slice->start) && pinWithin(slice->stop) &&
           pinWithin(slice->step);
  }
  if (!isTraced(object))
    return true;
  PyObject *trace = PyObject_GetAttrString(object, "trace");
  PyObject *value =
      trace ? PyObject_CallMethod(trace, "pin", "O", object) : nullptr;
  Py_XDECREF(trace);
  Py_XDECREF(value);
  return value != nullptr;
}

/// The replaced functions of one type. They stay valid afterwards: a class that
/// is created meanwhile inherits them.
template <size_t Place> struct Replaced {
  static inline PyTypeObject *type = nullptr;
  static inline PyNumberMethods numbers{};
  static inline binaryfunc subscript = nullptr;
  static inline objobjargproc assign = nullptr;
  static inline objobjproc contains = nullptr;
  static inline richcmpfunc compare = nullptr;
  static inline reprfunc represent = nullptr;
  static inline newfunc create = nullptr;
  static inline vectorcallfunc vectorcall = nullptr;

  /// Lets the traced number's reflected method compute the result.
  template <binaryfunc PyNumberMethods::*Slot>
  static PyObject *operate(PyObject *left, PyObject *right) {
    if (isTraced(right) && !isTraced(left))
      Py_RETURN_NOTIMPLEMENTED;
    if (PyUnicode_Check(left) && !pinWithin(right)) // "%d" % (n,)
      return nullptr;
    return (numbers.*Slot)(left, right);
  }

  static PyObject *power(PyObject *base, PyObject *exponent, PyObject *mod) {
    if (isTraced(exponent) && !isTraced(base))
      Py_RETURN_NOTIMPLEMENTED;
    return numbers.nb_power(base, exponent, mod);
  }

  static PyObject *compared(PyObject *left, PyObject *right, int operation) {
    if (isTraced(right) && !isTraced(left))
      Py_RETURN_NOTIMPLEMENTED;
    return compare(left, right, operation);
  }

  static PyObject *subscripted(PyObject *self, PyObject *key) {
    return pinWithin(key) ? subscript(self, key) : nullptr;
  }

  static int assigned(PyObject *self, PyObject *key, PyObject *value) {
    return pinWithin(key) ? assign(self, key, value) : -1;
  }

  static int contained(PyObject *self, PyObject *value) {
    return pinWithin(value) ? contains(self, value) : -1;
  }

  static PyObject *represented(PyObject *self) {
    return pinWithin(self) ? represent(self) : nullptr;
  }

  static PyObject *created(PyTypeObject *made, PyObject *arguments,
                           PyObject *named) {
    if (!pinWithin(arguments))
      return nullptr;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (named && PyDict_Next(named, &position, &key, &value))
      if (!pinWithin(value))
        return nullptr;
    return create(made, arguments, named);
  }

  static PyObject *called(PyObject *made, PyObject *const *arguments,
                          size_t count, PyObject *names) {
    const Py_ssize_t number =
        PyVectorcall_NARGS(count) + (names ? PyTuple_GET_SIZE(names) : 0);
    for (Py_ssize_t i = 0; i < number; ++i)
      if (!pinWithin(arguments[i]))
        return nullptr;
    return vectorcall(made, arguments, count, names);
  }

  template <class Function>
  static void exchange(Function &slot, Function &original, Function replacement,
                       bool isOn) {
    if (isOn && slot && slot != replacement) {
      original = slot;
      slot = replacement;
    } else if (!isOn && slot == replacement) {
      slot = original;
    }
  }

  template <binaryfunc PyNumberMethods::*...Slots>
  static void exchangeOperators(bool isOn) {
    (exchange(type->tp_as_number->*Slots, numbers.*Slots, &operate<Slots>,
              isOn),
     ...);
  }

  static void replaceOperators(bool isOn) {
    using Numbers = PyNumberMethods;
    exchangeOperators<&Numbers::nb_add, &Numbers::nb_subtract,
                      &Numbers::nb_multiply, &Numbers::nb_true_divide,
                      &Numbers::nb_floor_divide, &Numbers::nb_remainder,
                      &Numbers::nb_divmod, &Numbers::nb_and, &Numbers::nb_or,
                      &Numbers::nb_xor, &Numbers::nb_lshift,
                      &Numbers::nb_rshift>(isOn);
    exchange(type->tp_as_number->nb_power, numbers.nb_power, &power, isOn);
  }

  /// `isCreated`: whether the type's constructor reads numbers.
  static void replace(PyTypeObject *wanted, bool isCreated, bool isOn) {
    type = wanted;
    if (isCreated) {
      exchange(type->tp_new, create, &created, isOn);
      exchange(type->tp_vectorcall, vectorcall, &called, isOn);
    }
    if (type->tp_as_number)
      replaceOperators(isOn);
    if (type->tp_as_mapping) {
      exchange(type->tp_as_mapping->mp_subscript, subscript, &subscripted,
               isOn);
      exchange(type->tp_as_mapping->mp_ass_subscript, assign, &assigned, isOn);
    }
    if (type == &PyRange_Type)
      exchange(type->tp_as_sequence->sq_contains, contains, &contained, isOn);
    exchange(type->tp_repr, represent, &represented, isOn);
    exchange(type->tp_richcompare, compare, &compared, isOn);
  }
};

template <size_t... Places>
constexpr auto makeReplacements(std::index_sequence<Places...> /*places*/) {
  return std::array{&Replaced<Places>::replace...};
}

/// Each type has the same place in all calls.
void watchOperands(const py::list &operands, const py::list &created,
                   bool isOn) {
  constexpr auto replacements =
      makeReplacements(std::make_index_sequence<kMostTypes>());
  if (operands.size() + created.size() > kMostTypes)
    throw py::value_error("too many types");
  std::vector<PyTypeObject *> types;
  for (const py::list &list : {operands, created})
    for (py::handle type : list)
      types.push_back(reinterpret_cast<PyTypeObject *>(type.ptr()));
  // Types may share a table of functions, so the last one is restored first.
  for (size_t i = 0; i < types.size(); ++i) {
    const size_t place = isOn ? i : types.size() - 1 - i;
    replacements[place](types[place], place >= operands.size(), isOn);
  }
}

} // namespace

void torch_ltc::bindOperands(py::module_ &module) {
  module.def(
      "set_traced_types",
      [](py::handle ofInt, py::handle ofFloat) {
        tracedInt = reinterpret_cast<PyTypeObject *>(ofInt.ptr());
        tracedFloat = reinterpret_cast<PyTypeObject *>(ofFloat.ptr());
      },
      py::arg("of_int"), py::arg("of_float"));
  module.def("watch_operands", &watchOperands, py::arg("operands"),
             py::arg("created"), py::arg("is_on"));
}
