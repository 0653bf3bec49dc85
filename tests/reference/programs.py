"""What a traced program is made of."""


def equations(jaxpr):
    """Every equation of a jaxpr, those of its inner programs included: bodies of loops, branches."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from equations(getattr(inner, "jaxpr", inner))


def primitives(jaxpr):
    """The names of what it computes with."""
    return {equation.primitive.name for equation in equations(jaxpr)}
