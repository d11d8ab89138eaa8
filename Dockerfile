# docker build --tag counterveil . && docker run --rm counterveil demo
FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

# With byte code (60 MB): the user cannot write it, and every start would take 3 CPU s more without (pip's --no-compile).
FROM python:3.11-slim
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt "$(ls /wheels/*.whl)[demo]" \
    && rm -r /wheels \
    && useradd --create-home analyst \
    && install --directory --owner analyst /data
USER analyst
WORKDIR /data
ENTRYPOINT ["counterveil"]
CMD ["--help"]
