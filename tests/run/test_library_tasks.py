"""Tasks that a compiled program leaves for helpers, counted in a text worked by hand and in a program of XLA's own."""

import platform
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from muzero_jax.arithmetic import devices
from muzero_jax.run.library_tasks import TASK_BYTES, count, waiting_bytes

HLO = """\
HloModule jit_f, is_scheduled=true

%fused_product (param_0: f32[512,128], param_1: f32[128,128]) -> f32[512,128] {
  %param_0 = f32[512,128]{1,0} parameter(0)
  %param_1 = f32[128,128]{1,0} parameter(1)
  ROOT %dot = f32[512,128]{1,0} dot(%param_0, %param_1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%fused_product_at_limit (param_0.1: bf16[512,128], param_1.1: bf16[128,64]) -> f32[512,64] {
  %param_0.1 = bf16[512,128]{1,0} parameter(0)
  %param_1.1 = bf16[128,64]{1,0} parameter(1)
  ROOT %dot.1 = f32[512,64]{1,0} dot(%param_0.1, %param_1.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%fused_products (param_0.3: f32[16,64,64], param_1.3: f32[16,64,64]) -> f32[16,64,64] {
  %param_0.3 = f32[16,64,64]{2,1,0} parameter(0)
  %param_1.3 = f32[16,64,64]{2,1,0} parameter(1)
  ROOT %dot.3 = f32[16,64,64]{2,1,0} dot(%param_0.3, %param_1.3), lhs_batch_dims={0}, lhs_contracting_dims={2}
}

%fused_sum (param_0.2: f32[33,1024], param_1.2: f32[]) -> f32[33] {
  %param_0.2 = f32[33,1024]{1,0} parameter(0)
  %param_1.2 = f32[] parameter(1)
  ROOT %reduce = f32[33]{0} reduce(%param_0.2, %param_1.2), dimensions={1}, to_apply=%add
}

%body (state: (s32[], f32[33,1024])) -> (s32[], f32[33,1024]) {
  %state = (s32[], f32[33,1024]{1,0}) parameter(0)
  %sum = f32[33]{0} fusion(%a, %b), calls=%fused_sum, backend_config={"fusion_config":{"kind":"__ynn_fusion"}}
  ROOT %tuple = (s32[], /*index=1*/f32[33,1024]{1,0}) tuple(%a, %b)
}

%other_body (state.1: (s32[])) -> (s32[]) {
  %state.1 = (s32[]) parameter(0)
  %inner = (s32[], f32[33,1024]{1,0}) while(%state.1), body=%body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %call = f32[2]{0} call(%inner), to_apply=%products
}

%products (p: f32[2]) -> f32[2] {
  %product = f32[512,128]{1,0} fusion(%p), calls=%fused_product, backend_config={"kind":"__ynn_fusion"}
  %batch = f32[16,64,64]{2,1,0} fusion(%p), calls=%fused_products, backend_config={"kind":"__ynn_fusion"}
  ROOT %small = f32[512,64]{1,0} fusion(%p), calls=%fused_product_at_limit, backend_config={"kind":"__ynn_fusion"}
}

%nothing (q: f32[2]) -> f32[2] {
  ROOT %loop_fusion = f32[2]{0} fusion(%q), kind=kLoop, calls=%fused_sum
}

ENTRY %main (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  %known = (s32[]) while(%x), condition=%c, body=%other_body, backend_config={"known_trip_count":{"n":"3"}}
  %unknown = (s32[]) while(%x), condition=%c, body=%other_body
  %chosen = f32[2]{0} conditional(%x, %x, %x), branch_computations={%nothing, %products}
  ROOT %either = f32[2]{0} conditional(%x, %x, %x), true_computation=%nothing, false_computation=%products
}
"""


def test_large_products_and_sums_count_once_for_each_time_that_their_loops_reach_them():
    """A turn of `other_body` is five sums of 33 * 1024 numbers and one product of 512 * 128 * 128; products of 2^22,
    also as 16 of 2^18, are too small. It turns 3 times and, where nobody knows, once; each branching is a product.
    """
    assert count(HLO) == (3 + 1) * (5 + 1) + 2


@pytest.mark.parametrize("text", ["", "ENTRY main {\n  %x = f32[2]{0} call(%y), to_apply=%unknown\n  ?\n}"])
def test_a_program_without_such_operations_leaves_none_nor_one_that_is_not_understood(text):
    assert count(text) == 0


def test_xlas_own_text_is_understood():
    """Seven turns of a sum and a product."""

    def turn(x, _):
        y = jnp.tanh(x @ x)
        return y / (1 + jnp.sum(y, axis=1, keepdims=True)), None

    compiled = jax.jit(lambda x: lax.scan(turn, x, None, length=7)[0]).lower(jnp.ones((256, 256))).compile()
    text = compiled.as_text()
    if "__ynn_fusion" not in text and (platform.machine() != "x86_64" or jax.__version_info__ < (0, 9)):
        pytest.skip("this jaxlib gives no products to YNNPACK")
    assert count(text) == 7 * text.count('"__ynn_fusion"') > 0


@pytest.mark.parametrize("num_devices, cores, waiting", [(1, 1, 0), (1, 2, 0), (2, 4, 0), (2, 2, 26), (2, 1, 26)])
def test_tasks_wait_where_all_threads_of_the_pool_run_devices_programs(monkeypatch, num_devices, cores, waiting):
    monkeypatch.setattr(devices, "schedulable_cores", lambda: cores)
    program = SimpleNamespace(as_text=lambda: HLO)
    assert waiting_bytes(program, devices.make_mesh(num_devices)) == waiting * TASK_BYTES
