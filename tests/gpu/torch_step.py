"""A few training steps of a small network with PyTorch: the losses, the kernels that ran, the time of a step.

Run bare and under the tool by scripts/gpu-check, which compares the lines. Convolutions are tuned by timing (cudnn.benchmark), so
that a tool that disturbs measurements would show in the choice of kernels.
"""
import time

import torch
from torch import nn

torch.manual_seed(1)
torch.backends.cudnn.benchmark = True
torch.use_deterministic_algorithms(True, warn_only=True)
device = torch.device("cuda")
net = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(64 * 64, 512), nn.GELU(),
    nn.LayerNorm(512), nn.Linear(512, 10),
).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
images = torch.randn(64, 3, 32, 32, device=device)
labels = torch.randint(0, 10, (64,), device=device)


def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


for _ in range(5):
    step()
try:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        step()
    names = sorted({e.key for e in prof.key_averages()})
    for name in names:
        # the tool's own kernels are no choice of a library's
        if not name.startswith("opsdebug"):
            print("kernels", name)
except Exception as problem:  # another profiler, no CUPTI: the losses still tell
    print("# no profiler:", problem)
begin = time.perf_counter()
losses = [step() for _ in range(100)]
print("step_ms", (time.perf_counter() - begin) * 10)
for loss in losses[::20]:
    print("loss %.5f" % loss)
