"""What vLLM loads in each of its processes (entry point group `vllm.general_plugins`)."""


def register() -> None:
    """On a CPU, keep linear weights unpacked.

    vLLM 0.27 packs them for oneDNN and drops the originals, and verl's weight sync would have nothing to write to.
    """
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        from vllm import _custom_ops

        _custom_ops._supports_onednn = False
