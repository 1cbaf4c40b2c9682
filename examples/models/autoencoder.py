"""Autoencoders: a convolutional one, and a variational one that draws its code at random.

An image batch (n, channels, size, size) comes in, its reconstruction goes out; the variational model gives a
dictionary with the mean and the log variance too. In evaluation its code is the mean, so nothing is drawn.
"""

import torch
from torch import Tensor, nn


class ConvAutoencoder(nn.Module):
    def __init__(self, channels: int = 3, width: int = 16) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, width, 3, 2, 1), nn.ELU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ELU()
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
            nn.ELU(),
            nn.ConvTranspose2d(width, channels, 4, 2, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))


class VariationalAutoencoder(nn.Module):
    def __init__(self, size: int = 28, hidden: int = 400, code: int = 20) -> None:
        super().__init__()
        self.size = size
        self.encode = nn.Linear(size * size, hidden)
        self.mean = nn.Linear(hidden, code)
        self.log_variance = nn.Linear(hidden, code)
        self.decode = nn.Sequential(nn.Linear(code, hidden), nn.Tanh(), nn.Linear(hidden, size * size))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = torch.tanh(self.encode(x.view(-1, self.size * self.size)))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = mean
        if self.training:
            code = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        image = torch.sigmoid(self.decode(code)).view_as(x)
        return {"image": image, "mean": mean, "log_variance": log_variance}
